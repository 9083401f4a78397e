def render_preview(pictures, path, columns=8):
    """Write a grid of grey pictures as a PGM file."""
    rows = []
    for begin in range(0, len(pictures), columns):
        group = pictures[begin : begin + columns].view(-1, 28, 28).tolist()
        for y in range(28):
            line = []
            for picture in group:
                line += [min(255, max(0, int(127.5 * value + 127.5))) for value in picture[y]]
            rows.append(" ".join(map(str, line)))
    with open(path, "w") as file:
        file.write(f"P2\n{28 * columns} {len(rows)}\n255\n" + "\n".join(rows) + "\n")
