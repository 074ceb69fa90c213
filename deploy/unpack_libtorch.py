#!/usr/bin/env python3
"""Unpacks the CPU part of the LibTorch wheels into one folder: lib/, include/, version.py, LICENSE.

Used by deploy/libtorch.sh. The torch wheel also holds CUDA and Python libraries of a gigabyte; AutoLoCo links
libtorch_cpu.so and libc10.so only. These need the CUDA runtime and CUPTI even where there is no GPU, and look for
them beside themselves (RPATH $ORIGIN), so the two small NVIDIA wheels are unpacked into the same lib/.

    unpack_libtorch.py FOLDER_WITH_WHEELS DESTINATION
"""
import glob
import os
import shutil
import sys
import zipfile

TORCH_LIBRARIES = ("libtorch_cpu.so", "libc10.so")
TORCH_LIBRARY_PREFIXES = ("libgomp",)
NVIDIA_LIBRARY_PREFIXES = ("libcudart.so", "libcupti.so")


def destination_of(member):
    """Path below the destination folder for a member of any of the wheels, or None if it is not needed."""
    folder, name = os.path.split(member)
    if not name:
        return None
    if folder == "torch/lib":
        wanted = name in TORCH_LIBRARIES or name.startswith(TORCH_LIBRARY_PREFIXES)
        return "lib/" + name if wanted else None
    if member.startswith("torch/include/"):
        return member[len("torch/"):]
    if member == "torch/version.py":
        return "version.py"
    if folder.endswith(".dist-info/licenses") and name in ("LICENSE", "NOTICE", "License.txt"):
        return "licenses/{}-{}".format(folder.split("-")[0], name)
    if folder.startswith("nvidia/") and folder.endswith("/lib") and name.startswith(NVIDIA_LIBRARY_PREFIXES):
        return "lib/" + name
    return None


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheels = sorted(glob.glob(os.path.join(sys.argv[1], "*.whl")))
    if not wheels:
        sys.exit("no wheels in " + sys.argv[1])
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for info in archive.infolist():
                relative = destination_of(info.filename)
                if relative is None:
                    continue
                target = os.path.join(sys.argv[2], relative)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with archive.open(info) as source, open(target, "wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                if ".so" in os.path.basename(target):
                    os.chmod(target, 0o755)


if __name__ == "__main__":
    main()
