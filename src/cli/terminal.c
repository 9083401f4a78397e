/* What a terminal can show. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

#define WIDTH_USUAL 100 /* where nobody says: a file, a pipe */

static size_t terminal_width(int fd)
{
    struct winsize size;
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    return width > 0 && width < 10000 ? (size_t)width : WIDTH_USUAL;
}

static bool wants_colour(int fd, const char *colour)
{
    if (colour && strcmp(colour, "auto") != 0) {
        return strcmp(colour, "always") == 0;
    }
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return !(no_color && *no_color) && isatty(fd) && term && strcmp(term, "dumb") != 0;
}

sw_text_options cli_text_options(int fd, size_t width, const char *colour, int characters,
                                 size_t top)
{
    bool unicode = characters == CLI_CHARACTERS_UNICODE;
    if (characters == CLI_CHARACTERS_AUTO) {
        unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    }
    return (sw_text_options){.columns = width ? width : terminal_width(fd),
                             .colour = wants_colour(fd, colour),
                             .unicode = unicode,
                             .top = top};
}
