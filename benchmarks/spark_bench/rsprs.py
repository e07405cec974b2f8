"""rsp-rs, an engine for RSP-QL in Rust, on the events of the latency test.

It is built by cargo from its lock file into a temporary folder the first time. It evaluates the
whole window at each close, over a store that it fills then, on a thread of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.spark_bench.child import ChildFailed, Told, run
from benchmarks.spark_bench.feed import Feed
from benchmarks.spark_bench.floor import Answers
from benchmarks.spark_bench.peers import FOLDER, job_file, place

PEER = FOLDER / "rsprs"
LOCK = PEER / "Cargo.lock"
_PROGRAM = "acquatop-bench-rsprs"
_REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"
"""Cargo's name of crates.io, by which a configuration replaces it with a mirror."""
_WHO = re.compile(r'NamedNode \{ iri: "[^"]*/(\d+)" \}')
_SCORE = re.compile(r'TypedLiteral \{ value: "([^"]*)"')


def measure(feed: Feed, tell: Told) -> dict[str, Any]:
    """Return rsp-rs's result; :class:`ChildFailed` says what is missing."""
    program = _built(tell)
    with job_file(feed) as file:
        result = run([str(program), file], tell, program.parent)
    answers = list(parse(result["answers"]).items())
    return {**result, "answers": answers, "version": version()}


def parse(answers: list[tuple[int, list[str]]]) -> Answers:
    """Return answers in the common form; it gives out rows as text for programmers."""
    return {close: [_row(text) for text in rows] for close, rows in answers}


def _row(text: str) -> tuple[int, float]:
    who, score = _WHO.search(text), _SCORE.search(text)
    if who is None or score is None:
        raise ChildFailed(f"its row cannot be read: {text}")
    return int(who[1]), float(score[1])


def version() -> str:
    """Return the version that the lock file asks for."""
    packages = tomllib.loads(LOCK.read_text())["package"]
    found: str = next(each["version"] for each in packages if each["name"] == "rsp-rs")
    return found


def lock_for_cargo() -> str:
    """Return the lock file with the registry's name, by which cargo knows packages."""
    return LOCK.read_text().replace("\nchecksum = ", f'\nsource = "{_REGISTRY}"\nchecksum = ')


def _built(tell: Told) -> Path:
    """Return the program, built from sources of the versions and hashes of its lock file."""
    if shutil.which("cargo") is None:
        raise ChildFailed("cargo missing: install Rust to measure rsp-rs")
    folder = place("rsprs", LOCK)
    sources = folder / "vendor"
    ready = folder / ".ready"
    shutil.copytree(PEER / "src", folder / "src", dirs_exist_ok=True)
    if not ready.exists():
        tell("cargo fetches its sources (once)")
        shutil.copy(PEER / "Cargo.toml", folder)
        (folder / "Cargo.lock").write_text(lock_for_cargo())
        _cargo(folder, "vendor", "--locked", str(sources))
        _leave_out_disk(sources / "oxigraph")
        ready.touch()
    tell("cargo builds it (once; minutes)")
    target = folder / "target"
    replaced = 'source.crates-io.replace-with="fetched"', f'source.fetched.directory="{sources}"'
    configured = [f"--config={each}" for each in replaced]
    _cargo(folder, "build", "--release", "--offline", f"--target-dir={target}", *configured)
    return target / "release" / _PROGRAM


def _leave_out_disk(oxigraph: Path) -> None:
    """Turn off Oxigraph's store on disk, half an hour of C++; windows are in memory."""
    manifest = oxigraph / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('default = ["rocksdb"]', "default = []"))
    hashes = oxigraph / ".cargo-checksum.json"
    hashes.write_text(json.dumps({**json.loads(hashes.read_text()), "files": {}}))


def _cargo(folder: Path, *arguments: str) -> None:
    command = ["cargo", "--quiet", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " / ".join(line.strip() for line in done.stderr.strip().splitlines()[-3:])
        raise ChildFailed(f"cargo cannot {arguments[0]} it: {said}")
