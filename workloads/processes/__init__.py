"""The processes of a run: worker, generator, observer. The harness starts each by its module name."""
