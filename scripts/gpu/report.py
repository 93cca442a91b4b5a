"""Tables for people, JSON for programs."""
import json
import os


def table(heads, rows):
    """Text table with columns as wide as their widest cell, except for the last."""
    cells = [[str(cell) for cell in row] for row in [heads] + rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = []
    for number, row in enumerate(cells):
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row[:-1], widths)) + "  " + row[-1])
        if number == 0:
            lines.append("  ".join("-" * width for width in widths[:-1]) + "  " + "-" * len(row[-1]))
    return "\n".join(line.rstrip() for line in lines)


def write_json(folder, name, value):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path + ".part", "w") as to:
        json.dump(value, to, indent=1)
        to.write("\n")
    os.replace(path + ".part", path)
    return path
