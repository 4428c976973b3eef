"""`akunu config`: what a program needs to be built with the C interface."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from pathlib import Path

import click

from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS, Command

__all__ = ["command"]


@click.command("config", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.option("--cflags", is_flag=True, help="Print the options of the compiler.")
@click.option("--libs", is_flag=True, help="Print the options of the linker.")
def command(cflags: bool, libs: bool) -> None:
    """Print how to build a program that uses Akunu by its C interface, akunu.h.

    The program runs this Python in itself, so it is built and run with the same environment.

    \b
    Examples:
      akunu config
      cc chat.c $(akunu config --cflags --libs) -o chat
    """
    import akunu

    package = Path(akunu.__file__).parent
    include, library = package / "include", package / "lib"
    if not (include / "akunu.h").exists():
        raise AkunuError(f"{include}/akunu.h is not there: this package was built without the C interface")
    if not (cflags or libs):
        click.echo(f"header: {include / 'akunu.h'}\nlibrary: {library}\npython: {' '.join(_python())}")
        return
    words = [f"-I{include}"] if cflags else []
    if libs:
        words += [f"-L{library}", "-lakunu", f"-Wl,-rpath,{library}", *_python()]
    click.echo(shlex.join(words))


def _python() -> list[str]:
    """Return the linker's options for the library of this Python."""
    values = sysconfig.get_config_vars()
    name = f"python{values['py_version_short']}{sys.abiflags}"
    if values.get("PYTHONFRAMEWORK"):
        return [f"-L{values['LIBPL']}", f"-l{name}", "-framework", "CoreFoundation"]
    if not values.get("Py_ENABLE_SHARED"):
        raise AkunuError(
            f"{sys.executable} has no shared library, which programs need; use a Python that has one: that "
            "of the system (package python3-dev), of uv, or of pyenv (PYTHON_CONFIGURE_OPTS=--enable-shared)"
        )
    folder = values["LIBDIR"]
    # Only libakunu needs it, so a linker that drops what the program itself does not need would drop it.
    kept = ["-Wl,--push-state,--no-as-needed", f"-l{name}", "-Wl,--pop-state"]
    return [f"-L{folder}", *kept, f"-Wl,-rpath,{folder}"]
