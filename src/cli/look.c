#include "cli/look.h"

#include <string.h>

static bool is_colour(const char *value)
{
    return strcmp(value, "auto") == 0 || strcmp(value, "always") == 0 ||
           strcmp(value, "never") == 0;
}

bool look_option(struct look *look, const struct command *command, int which,
                 const char *value)
{
    switch (which) {
    case LOOK_ASCII:
        look->characters = CLI_CHARACTERS_ASCII;
        return true;
    case LOOK_UNICODE:
        look->characters = CLI_CHARACTERS_UNICODE;
        return true;
    case LOOK_COLOUR:
        look->colour = value;
        if (!is_colour(value)) {
            cli_complain("%s: --color takes auto, always or never, not '%.60s'.",
                         command->name, value);
            return false;
        }
        return true;
    case LOOK_WIDTH:
        return option_count(command, "width", value, SW_TEXT_COLUMNS_MIN,
                            SW_TEXT_COLUMNS_MAX, &look->width);
    default:
        return false;
    }
}

bool look_rows(const struct command *command, const char *option, const char *value,
               size_t *out)
{
    if (strcmp(value, "all") == 0) {
        *out = SW_TEXT_ALL;
        return true;
    }
    return option_count(command, option, value, 1, 1000000, out);
}

sw_text_options look_on(const struct look *look, int fd, size_t rows)
{
    return cli_text_options(fd, look->width, look->colour ? look->colour : "auto",
                            look->characters, rows);
}
