"""The commands `onceproof serve` and `onceproof diff`: look at runs in a browser, and compare two of them."""

import argparse
import ipaddress
import json
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onceproof.cli import commands, values
from onceproof.harness.base.errors import BadInput

_PORT = 8765


def add(subcommands: Any) -> None:
    """Add both commands to the parser of the command line."""
    serve = subcommands.add_parser("serve", help="show the runs of a folder in a browser on this machine")
    serve.add_argument("folder", type=Path, nargs="?", default=Path("runs"), help="the folder (default: runs)")
    serve.add_argument(
        "--port",
        type=values.between(0, 65_535),
        metavar="N",
        default=_PORT,
        help=f"port; 0 takes a free one (default: {_PORT})",
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    serve.add_argument(
        "--to-others",
        action="store_true",
        help="allow an address that other machines reach; whoever reaches it can read all runs",
    )
    serve.set_defaults(command=serve_command)
    diff = subcommands.add_parser("diff", help="compare two runs")
    diff.add_argument("before", type=Path, help="a run's folder")
    diff.add_argument("after", type=Path, help="another run's folder")
    diff.add_argument("--all", action="store_true", help="also print what is equal")
    diff.add_argument("--json", action="store_true", help="print JSON: a list of properties with both values")
    diff.set_defaults(command=diff_command)


def serve_command(options: argparse.Namespace) -> int:
    """Serve the runs of a folder until it is interrupted."""
    from onceproof.report.server import Server

    if not options.folder.is_dir():
        raise BadInput(f"{options.folder}: no such folder; `onceproof run` makes it")
    address = _address(options.host)
    if not address.is_loopback and not options.to_others:
        raise BadInput(f"--host {options.host}: other machines reach this address; allowed with --to-others")
    hosts = None if options.to_others else {"127.0.0.1", "localhost", "[::1]", str(address)}
    try:
        server = Server(options.folder, host=str(address), port=options.port, hosts=hosts)
    except OSError as error:
        raise BadInput(f"--port {options.port}: cannot listen there: {error.strerror}") from None
    with server:
        host = f"[{address}]" if address.version == 6 else str(address)
        commands.say(f"runs: http://{host}:{server.server_address[1]}/ (Ctrl-C ends it)")
        server.serve_forever()
    return commands.AS_EXPECTED


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address of a host. Raises BadInput when it has none."""
    try:
        return ipaddress.ip_address(socket.getaddrinfo(host, None)[0][4][0])
    except (OSError, ValueError, UnicodeError):
        raise BadInput(f"--host {host!r:.80}: allowed: an address of this machine, such as 127.0.0.1") from None


def diff_command(options: argparse.Namespace) -> int:
    """Print the properties in which two runs differ; exit status 1 if their verdicts do."""
    from onceproof.report import compare

    for folder in (options.before, options.after):
        commands.run_folder(folder)
    rows = compare.rows(options.before, options.after, everything=options.all)
    if options.json:
        commands.say(json.dumps([asdict(row) for row in rows], indent=1))
    elif rows:
        commands.table(
            ("", options.before.absolute().name, options.after.absolute().name),
            ((row.what, row.before, row.after) for row in rows),
        )
    else:
        commands.say("the runs do not differ")
    same = all(row.what != "verdict" or not row.differs for row in rows)
    return commands.AS_EXPECTED if same else commands.NOT_AS_EXPECTED
