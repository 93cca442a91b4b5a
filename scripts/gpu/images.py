"""Real images for benchmarks; they are not part of the project."""
import os
import tarfile

import job


def shared_data(bench, name):
    """Folder of an unpacked archive of FLEET_SHARED_DATA (or --data, or ../shared/data next to this tree); None if missing."""
    for place in (bench.options.data, os.environ.get("FLEET_SHARED_DATA"), job.file_of("..", "shared", "data")):
        path = os.path.join(place, name) if place else ""
        if place and os.path.isfile(path):
            folder = os.path.join(bench.folder, name.split(".")[0])
            if not os.path.isdir(folder):
                print(f"unpacking {path}", flush=True)
                with tarfile.open(path) as archive:
                    archive.extractall(folder + ".part")
                os.rename(folder + ".part", folder)
            return folder
    return None


def photographs(bench):
    """A list file of the photographs, each several times, and the root folder of its paths; None if there are none."""
    folder = shared_data(bench, "imagenet_200.tar")
    if folder is None:
        return None, None
    files = []
    for where, _, names in os.walk(folder):
        files += [os.path.relpath(os.path.join(where, name), folder) for name in names
                  if name.lower().endswith((".jpeg", ".jpg"))]
    path = os.path.join(bench.folder, "photographs.txt")
    with open(path, "w") as to:
        for _ in range(1 if bench.smoke else 128):
            to.writelines(f"{name} {label}\n" for label, name in enumerate(sorted(files)))
    return path, folder
