"""Print where a virtual environment keeps platform packages, relative to its prefix."""

from __future__ import annotations

import os
import sysconfig


def main() -> None:
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    path = sysconfig.get_path("platlib", scheme, vars={"platbase": "/prefix", "base": "/prefix"})
    print(os.path.relpath(path, "/prefix"))


if __name__ == "__main__":
    main()
