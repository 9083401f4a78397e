/* A line on the last row of a terminal that a program writes to. The program has the rows above it to itself: they scroll
 * (DECSTBM), and the cursor stays where the program left it. */
#ifndef SW_CLI_BOTTOM_ROW_H
#define SW_CLI_BOTTOM_ROW_H

#include <stdbool.h>
#include <stddef.h>

struct bottom_row {
    int fd;                 /* -1: there is no terminal that could show it */
    bool claimed;           /* the program has one row less, which must be given back */
    bool shown;             /* … and nobody else has drawn on the screen since */
    unsigned rows, columns; /* when it was claimed */
    char pending[512];      /* what the terminal has not taken yet */
    size_t pending_length;
};

/* Looks at the terminal behind `fd`, which keeps its own mode: what is written here never waits. */
void bottom_row_open(struct bottom_row *row, int fd);
void bottom_row_close(struct bottom_row *row); /* takes it away first */

/* Columns that a text may have now; 0: nothing can be shown at this moment, because the terminal is too small, another job's,
 * or in the hands of a program that draws its own screen. What was shown is taken away where that is safe. */
unsigned bottom_row_room(struct bottom_row *row);
/* Shows a text of at most that many columns; `colour` is the part of an escape sequence between ESC [ and m, or NULL. */
void bottom_row_show(struct bottom_row *row, const char *text, const char *colour);
/* Gives the row back to the program, empty. */
void bottom_row_hide(struct bottom_row *row);

#endif
