"""The programs that a run starts, each as `python -m`: by module name, since a process of its own loads them."""

WORKER = f"{__name__}.worker"
GENERATOR = f"{__name__}.generator"
OBSERVER = f"{__name__}.observer"
FILLER = f"{__name__}.filler"
PLAIN_READER = f"{__name__}.plain_reader"
