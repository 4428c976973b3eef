"""The C interface: programs in C, Rust, Go and Swift that run models by it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import akunu
from akunu import _core
from api.encoders import wordpiece
from children import ROOT
from missing import missing

EXAMPLES = ROOT / "examples"
RECORDING = Path(akunu.__file__).parent / "models" / "ember-speech.ogg"


def config(*words: str) -> list[str]:
    command = [sys.executable, "-m", "akunu", "config", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def built(*command: str | os.PathLike[str], **settings: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **settings})
    assert done.returncode == 0, done.stderr[-4000:]


def ran(*command: str | os.PathLike[str], status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stderr[-4000:]
    return done


def compiler(name: str) -> str:
    found = shutil.which(name)
    return found or missing(f"no compiler {name}")


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("c") / "driver"
    flags = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-pthread")
    built(
        compiler("cc"),
        *flags,
        Path(__file__).with_name("c_abi_driver.c"),
        *config("--cflags", "--libs"),
        "-o",
        program,
    )
    return program


def test_every_function_from_c(driver, tmp_path) -> None:
    wordpiece.write_model("bert", tmp_path / "bert")
    done = ran(driver, "ember", tmp_path / "bert", "ember-speech", RECORDING)
    assert done.stdout.endswith("done\n")
    assert done.stderr == ""


def errors_of_ours(report: Path) -> list[str]:
    """Errors and definite leaks in a report of valgrind's that begin in the program or in Akunu's libraries.

    An error belongs to the library that called the C or C++ library. The interpreter, which is never ended,
    and what it imports have some of their own.
    """
    found = []
    for error in ElementTree.parse(report).getroot().iter("error"):
        stack = next(error.iter("stack"))
        frames = [(f.findtext("obj", ""), f.findtext("fn", "?")) for f in stack.iter("frame")]
        names = [(Path(path).name, function) for path, function in frames]
        first = next(
            (n for n in names if not n[0].startswith(("vgpreload", "libc.", "libc-", "libstdc++"))), None
        )
        if first and first[0].startswith(("driver", "libakunu", "_core")):
            found.append(f"{error.findtext('kind')}: {' < '.join(function for _, function in names[:12])}")
    return found


@pytest.mark.long
@pytest.mark.in_turn
def test_a_program_leaks_nothing_and_reads_nothing_that_it_should_not(driver, tmp_path) -> None:
    valgrind = shutil.which("valgrind") or missing("no valgrind")
    report = tmp_path / "report.xml"
    python = Path("/usr/lib/valgrind/python3.supp")
    suppressions = [f"--suppressions={python}"] * python.exists()
    options = ["--leak-check=full", "--show-leak-kinds=definite", "--num-callers=40", *suppressions]
    # valgrind cannot read clang's debug information in Metal's emulator, to which modules for tests link.
    linked = re.search(r"libfake_metal\.so => (\S+)", ran("ldd", _core.__file__).stdout)
    if linked:
        ran("strip", "-g", "-o", tmp_path / "libfake_metal.so", linked[1])
    done = subprocess.run(
        [valgrind, *options, "--xml=yes", f"--xml-file={report}", driver, "ember"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONMALLOC": "malloc", "LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr[-4000:]
    assert not errors_of_ours(report)


def test_the_example_in_c(tmp_path) -> None:
    program = tmp_path / "chat"
    built(compiler("cc"), EXAMPLES / "c" / "chat.c", *config("--cflags", "--libs"), "-o", program)
    assert (
        ran(program, "ember", "What is the capital of France?").stdout == "The capital of France is Paris.\n"
    )
    assert "no model 'nosuch.gguf'" in ran(program, "nosuch.gguf", "hi", status=1).stderr
    with akunu.load("ember") as model:
        answer = model.chat([{"role": "user", "content": 'Say "hi"\t\\ é'}], temperature=0)
    assert ran(program, "ember", 'Say "hi"\t\\ é').stdout == f"{answer}\n"


PROMPT = "Once upon a time"


@pytest.fixture(scope="module")
def continued() -> str:
    with akunu.load("ember") as model:
        return f"{model.generate(PROMPT, temperature=0, max_tokens=40)}\n"


def test_the_example_in_rust(tmp_path, continued) -> None:
    program = tmp_path / "continue"
    libs = " ".join(config("--libs"))
    built(
        compiler("rustc"),
        EXAMPLES / "rust" / "continue.rs",
        "-D",
        "warnings",
        "-C",
        f"link-args={libs}",
        "-o",
        program,
    )
    assert ran(program, "ember", PROMPT).stdout == continued


def test_the_example_in_go(tmp_path, continued) -> None:
    program = tmp_path / "continue"
    flags = {"CGO_CFLAGS": " ".join(config("--cflags")), "CGO_LDFLAGS": " ".join(config("--libs"))}
    built(
        compiler("go"), "build", "-o", program, EXAMPLES / "go" / "continue.go",
        **flags, CGO_LDFLAGS_ALLOW="-Wl,.*", GOCACHE=str(tmp_path / "cache"), GOFLAGS="-modcacherw",
    )  # fmt: skip
    assert ran(program, "ember", PROMPT).stdout == continued


@pytest.mark.skipif(not shutil.which("swiftc"), reason="no swiftc, which Debian 12 does not have")
def test_the_example_in_swift(tmp_path, continued) -> None:
    program = tmp_path / "continue"
    (include,) = config("--cflags")
    header = Path(include.removeprefix("-I")) / "akunu.h"
    libs = [word for flag in config("--libs") for word in flag.replace("-Wl,", "-Xlinker,").split(",")]
    libs = [part for word in libs for part in ([word] if word.startswith("-") else ["-Xlinker", word])]
    built(
        "swiftc", EXAMPLES / "swift" / "continue.swift", "-import-objc-header", header, *libs, "-o", program
    )
    assert ran(program, "ember", PROMPT).stdout == continued


def test_what_config_prints(akunu_config) -> None:
    header, library, python = akunu_config().splitlines()
    assert Path(header.removeprefix("header: ")).read_text().startswith("/* The C interface of Akunu")
    assert list(Path(library.removeprefix("library: ")).glob("libakunu.*"))
    assert "-lpython3" in python


@pytest.fixture
def akunu_config():
    return lambda *words: ran(sys.executable, "-m", "akunu", "config", *words).stdout


def test_a_python_without_a_shared_library_is_named(monkeypatch, capsys) -> None:
    import sysconfig

    from akunu.cli import main

    values = {**sysconfig.get_config_vars(), "Py_ENABLE_SHARED": 0, "PYTHONFRAMEWORK": ""}
    monkeypatch.setattr(sysconfig, "get_config_vars", lambda: values)
    assert main(["config", "--libs"]) == 1
    assert "has no shared library, which programs need" in capsys.readouterr().err
