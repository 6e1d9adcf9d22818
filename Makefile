lock:
	uv pip compile
