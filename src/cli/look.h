/* Options of the commands that print a page: how it looks. */
#ifndef SW_CLI_LOOK_H
#define SW_CLI_LOOK_H

#include "cli/cli.h"
#include "cli/option_parser.h"

/* They stand last in a command's table, in this order, from LOOK on: enum { …, LOOK, OPTIONS = LOOK + LOOK_OPTIONS }. */
enum { LOOK_ASCII, LOOK_UNICODE, LOOK_COLOUR, LOOK_WIDTH, LOOK_OPTIONS };
#define LOOK_SPECS                                                                       \
    {"ascii", 0, NULL, "ASCII characters only"},                                         \
        {"unicode", 0, NULL, "Unicode, whatever the locale says"},                       \
        {"color", 0, "WHEN", "auto, always or never"},                                   \
    {                                                                                    \
        "width", 0, "N", "columns, 60 to 200; else the terminal's"                       \
    }

struct look {
    const char *colour; /* NULL: auto */
    int characters;
    size_t width;
};

/* Takes option number LOOK + `which`. False: its value is none, or there is no such option; the former has been
 * complained of. */
bool look_option(struct look *look, const struct command *command, int which,
                 const char *value);
/* How many rows: a number, or "all". False when it is neither, which has been complained of. */
bool look_rows(const struct command *command, const char *option, const char *value,
               size_t *out);
/* What a page on this descriptor looks like. */
sw_text_options look_on(const struct look *look, int fd, size_t rows);
/* A sentence in lines of so many columns, broken at spaces; later ones are indented. 0: one line. */
void look_wrap(sw_writer *writer, const char *text, size_t columns);

#endif
