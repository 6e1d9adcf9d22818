"""No circle of imports in the whole package. (The order of storeys and rooms is import-linter's, in pyproject.toml.)"""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_file_imports_itself_through_others() -> None:
    graph = grimp.build_graph("onceproof", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None
