"""python -m fleetrun ARGUMENTS... becomes the program fleetrun of this environment."""
import importlib.metadata
import os
import sys


def program() -> str:
    """The installed program: pip chooses its folder, and records it."""
    for file in importlib.metadata.files("fleetrun") or []:
        if file.name == "fleetrun" and file.parent.name == "bin":
            return os.path.abspath(str(file.locate()))
    sys.exit("fleetrun: the program bin/fleetrun is missing from this environment; install the wheel again")


def start(name: str) -> None:
    """Replaces this process. The program decides by its name what it is."""
    os.execv(program(), [name, *sys.argv[1:]])


def fleetd() -> None:
    start("fleetd")


if __name__ == "__main__":
    start("fleetrun")
