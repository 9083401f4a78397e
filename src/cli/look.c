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

/* Columns of a piece of text: bytes of UTF-8 that begin a character. */
static size_t columns_of(const char *text, size_t length)
{
    size_t columns = 0;
    for (size_t i = 0; i < length; i++) {
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return columns;
}

void look_wrap(sw_writer *writer, const char *text, size_t columns)
{
    size_t at = 0;
    while (*text) {
        const size_t word = strcspn(text, " ");
        const size_t wide = columns_of(text, word);
        if (at && columns && at + 1 + wide > columns) {
            sw_write_text(writer, "\n ");
            at = 1;
        }
        sw_write_format(writer, "%s%.*s", at ? " " : "", (int)word, text);
        at += (at ? 1 : 0) + wide;
        text += word;
        text += *text == ' ';
    }
    sw_write_text(writer, "\n");
}
