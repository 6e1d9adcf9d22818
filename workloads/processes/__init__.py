"""The programs that a run starts as processes of its own, by module name for `python -m`."""

WORKER = f"{__name__}.worker"
GENERATOR = f"{__name__}.generator"
OBSERVER = f"{__name__}.observer"
FILLER = f"{__name__}.filler"
SUPERVISOR = f"{__name__}.supervisor"
PROBE = f"{__name__}.probe"
PLAIN_READER = f"{__name__}.plain_reader"
