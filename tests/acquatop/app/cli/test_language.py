"""The verbs about queries as text: check, explain, fmt."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from acquatop.app.cli import main
from tests.support.worlds import catalog_text, query_text

ROOT = Path(__file__).parents[4]
GOOD = query_text(width=9, slide=3)
BAD = GOOD.replace("ON :stream", "ON :streem")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "good": GOOD,
        "bad": BAD,
        "broken": "SELECT",
        "catalog": catalog_text(endpoint="${NOT_SET}"),
    }
    paths = {name: tmp_path / f"{name}.rspql" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name], "utf-8")
    return paths


def run(*arguments: object) -> int:
    return main([str(each) for each in arguments])


def test_check_says_what_is_wrong_and_fails(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", files["good"], files["bad"]) == 0
    assert capsys.readouterr().out == f"{files['good']}: ok\n{files['bad']}: ok\n"
    assert run("check", "--catalog", files["catalog"], files["good"], files["bad"]) == 2
    out = capsys.readouterr().out
    assert f"{files['good']}: ok\n" in out
    assert "the catalog has no stream <http://example.org/streem>" in out


def test_check_as_json_is_one_object_per_file(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = files["good"].with_name("missing.rspql")
    latin = files["good"].with_name("latin.rspql")
    latin.write_bytes(b"SELECT * { ?s ?p '\xe9' }")
    order = [files["good"], files["broken"], missing, latin, files["good"].parent]
    assert run("check", "--json", *order) == 2
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["file"], each["ok"]) for each in found] == [
        (str(file), file == files["good"]) for file in order
    ]
    assert [[one["code"] for one in each["diagnostics"]] for each in found] == [
        [],
        ["syntax"],
        ["unreadable"],
        ["unreadable"],
        ["unreadable"],
    ]
    keys = {"code", "severity", "file", "line", "column", "span", "message", "hint"}
    assert all(set(one) == keys for each in found for one in each["diagnostics"])


def test_syntax_only_does_not_care_what_names_stand_for(tmp_path: Path) -> None:
    query = tmp_path / "q.rspql"
    clause = "FROM NAMED WINDOW :W ON :S [RANGE 9 STEP 3]"
    query.write_text(f"REGISTER STREAM :o AS SELECT ?u F(?m) AS ?s {clause} {{ }} LIMIT 1")
    assert run("check", "--syntax-only", query) == 2
    assert run("check", "--syntax-only", "--unit", "m", query) == 0
    assert run("check", "--unit", "m", query) == 2


def test_the_standard_input_is_a_file_too(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("check", "explain", "fmt"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
        assert run(verb, "-") == 0
    assert "SELECT ?user" in capsys.readouterr().out


def test_explain_shows_the_plan(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", files["good"], "--catalog", files["catalog"]) == 0
    assert "ranked by IMP; N = 2" in capsys.readouterr().out
    assert run("explain", files["good"], "--json") == 0
    assert json.loads(capsys.readouterr().out)["strategy"] == "incremental"
    assert run("explain", files["bad"], "--catalog", files["catalog"]) == 2
    assert "the catalog has no stream" in capsys.readouterr().err


def test_fmt_formats_in_place_and_can_only_look(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    query = files["good"]
    query.chmod(0o640)
    assert run("fmt", "--check", query) == 2
    assert query.read_text() == GOOD
    assert run("fmt", query) == 0
    formatted = query.read_text()
    assert formatted != GOOD
    assert query.stat().st_mode & 0o777 == 0o640
    assert run("fmt", "--check", query) == 0
    assert run("check", query) == 0
    assert run("fmt", files["broken"]) == 2
    assert files["broken"].read_text() == "SELECT"
    assert [each.name for each in query.parent.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize("verb", ["check", "fmt", "explain"])
def test_the_verbs_start_without_the_heavy_packages(verb: str, files: dict[str, Path]) -> None:
    code = (
        "import sys; from acquatop.app.cli import main; main(sys.argv[1:]); "
        "print([name for name in ('pyspark', 'pandas', 'pyarrow', 'rdflib', 'pyoxigraph') if "
        "name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, verb, str(files["good"])],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_output_that_cannot_be_written_is_the_environment_s_fault(files: dict[str, Path]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "acquatop", "check", str(files["good"])]
        done = subprocess.run(
            command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "acquatop: No space left on device\n")


def test_fmt_goes_on_after_a_bad_file_and_leaves_others_alone(files: dict[str, Path]) -> None:
    beside = files["good"].with_name("..fmt")
    beside.write_text("important")
    linked = files["good"].with_name("linked.rspql")
    linked.symlink_to(files["good"])
    assert run("fmt", files["broken"], linked) == 2
    assert linked.is_symlink()
    assert files["good"].read_text() != GOOD
    assert beside.read_text() == "important"


def test_the_grammar_s_cache_is_made_and_does_without(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    def check(home: Path) -> int:
        environment = {"XDG_CACHE_HOME": str(home), "HOME": str(home), "PATH": "/usr/bin:/bin"}
        command = [sys.executable, "-m", "acquatop", "check", str(files["good"])]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, check=False
        ).returncode

    assert check(tmp_path) == 0
    (cache,) = (tmp_path / "acquatop").iterdir()
    cache.write_bytes(cache.read_bytes()[:1000])
    assert check(tmp_path) == 0
    assert check(Path("/proc/nowhere")) == 0


# Queries on queries -------------------------------------------------------------------------------


@pytest.fixture
def network(tmp_path: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the files of a query that reads another, and of that other."""
    monkeypatch.setenv("NOT_SET", "http://127.0.0.1:9/query")
    reader = query_text(score="2 * ?score + ?followers").replace("ON :stream", "ON :a")
    reader = reader.replace("?user :mentions ?mentions", "?row :user ?user ; :score ?score")
    reader = reader.replace("?mentions ", "").replace("AS ?score)", "AS ?twice)")
    texts = {
        "reader": reader.replace("DESC(?score)", "DESC(?twice)"),
        "source": GOOD.replace("SELECT", "REGISTER STREAM :a AS SELECT", 1),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.rspql").write_text(text)
    return [tmp_path / f"{name}.rspql" for name in texts]


def test_check_and_explain_name_what_a_query_reads(
    network: list[Path], files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reader, source = network
    catalog = ("--catalog", files["catalog"])
    assert run("check", *catalog, reader) == 2
    assert "(a query that makes it is registered first)" in capsys.readouterr().out
    assert run("check", *catalog, reader, source) == 0
    ok = f"{reader}: ok; reads the answers of <http://example.org/a>\n{source}: ok\n"
    assert capsys.readouterr().out == ok
    assert run("check", "--json", *catalog, reader, source) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each.get("reads") for each in found] == [["http://example.org/a"], None]
    assert run("explain", *catalog, reader, source) == 0
    out = capsys.readouterr().out
    assert "over the stream <http://example.org/a> that a query makes of its answers" in out
    assert "never more certain than the answers of <http://example.org/a> in the window" in out
    assert run("explain", "--json", *catalog, reader, source) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["windows"][0]["answers_of"] == second["query"] == "http://example.org/a"


def test_queries_that_read_in_a_circle_are_refused_where_they_do(
    network: list[Path], files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reader, source = network
    reader.write_text(reader.read_text().replace("SELECT", "REGISTER STREAM :b AS SELECT", 1))
    source.write_text(source.read_text().replace("ON :stream", "ON :b"))
    place = f"{source}:4:25: <http://example.org/b> is made of what this query answers"
    catalog = ("--catalog", files["catalog"])
    assert run("check", *catalog, reader, source) == 2
    assert place in capsys.readouterr().out
    assert run("run", *catalog, "--runtime", "local", reader, source) == 2
    assert place in capsys.readouterr().err


def test_run_takes_queries_in_any_order(
    network: list[Path], files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    reader, source = network
    for file, score in ((reader, "?twice"), (source, "?score")):
        text = file.read_text().replace(" + ?followers", "").replace("?followers ", "")
        text = text.partition("SERVICE")[0]
        file.write_text(f"{text} }} ORDER BY DESC({score}) LIMIT 2")
    lines = [json.dumps({"t": t, "user": "ab"[t % 2], "mentions": t}) for t in range(1, 20)]
    reader.with_name("events").write_text("\n".join(lines) + "\n")
    options = ("--catalog", files["catalog"], "--runtime", "local", "--until-end", "--json")
    assert run("run", *options, reader, source) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["query"] for each in answers} == {"reader", "http://example.org/a"}


def test_the_example_reads_the_query_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "examples" / "social_media"
    files = [folder / "lasting.rspql", folder / "query.rspql"]
    assert run("check", *files, "--catalog", folder / "catalog.toml") == 0
    read = "<http://example.org/social#EmergingUsers>"
    assert f"lasting.rspql: ok; reads the answers of {read}" in capsys.readouterr().out
