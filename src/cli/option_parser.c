#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/option_parser.h"

struct option_parser option_parser_start(const struct command *command, int argc,
                                         char **argv, bool stop_at_operand)
{
    return (struct option_parser){.command = command,
                                  .argc = argc,
                                  .argv = argv,
                                  .index = 1,
                                  .stop_at_operand = stop_at_operand};
}

static int complain_unknown(const struct command *command, const char *option,
                            size_t length)
{
    const char *names[64];
    char word[128];
    size_t count = 0;
    for (size_t i = 0; i < command->option_count && count < 63; i++) {
        names[count++] = command->options[i].name;
    }
    names[count++] = "help";
    snprintf(word, sizeof word, "%.*s", (int)(length < 120 ? length : 120), option);
    const char *near =
        strncmp(word, "--", 2) == 0 ? cli_nearest(word + 2, names, count) : NULL;
    if (near) {
        cli_complain("%s: unknown option '%s'; did you mean '--%s'?", command->name, word,
                     near);
    } else {
        cli_complain("%s: unknown option '%s'; see 'stepwatch %s --help'.", command->name,
                     word, command->name);
    }
    return OPTION_BAD;
}

static int next_long(struct option_parser *parser, const char **value)
{
    const char *word = parser->argv[parser->index++];
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if (length == 4 && memcmp(name, "help", 4) == 0) {
        return OPTION_HELP;
    }
    const struct command *command = parser->command;
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *option = &command->options[i];
        if (strlen(option->name) != length || memcmp(option->name, name, length) != 0) {
            continue;
        }
        if (!option->argument && equals) {
            cli_complain("%s: option '--%s' takes no value.", command->name,
                         option->name);
            return OPTION_BAD;
        }
        if (option->argument && !equals && parser->index >= parser->argc) {
            cli_complain("%s: option '--%s' needs a value (%s).", command->name,
                         option->name, option->argument);
            return OPTION_BAD;
        }
        if (option->argument) {
            *value = equals ? equals + 1 : parser->argv[parser->index++];
        }
        return (int)i;
    }
    return complain_unknown(command, word, length + 2);
}

static int next_short(struct option_parser *parser, const char **value)
{
    const struct command *command = parser->command;
    char letter = *parser->letters++;
    if (letter == 'h') {
        return OPTION_HELP;
    }
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_spec *option = &command->options[i];
        if (option->letter != letter) {
            continue;
        }
        if (!option->argument) {
            return (int)i;
        }
        if (*parser->letters) {
            *value = parser->letters;
        } else if (parser->index < parser->argc) {
            *value = parser->argv[parser->index++];
        } else {
            cli_complain("%s: option '-%c' needs a value (%s).", command->name, letter,
                         option->argument);
            return OPTION_BAD;
        }
        parser->letters = NULL;
        return (int)i;
    }
    char word[3] = {'-', letter, '\0'};
    return complain_unknown(command, word, 2);
}

int option_next(struct option_parser *parser, const char **value)
{
    *value = NULL;
    if (parser->letters && *parser->letters) {
        return next_short(parser, value);
    }
    if (parser->index >= parser->argc) {
        return OPTION_END;
    }
    const char *word = parser->argv[parser->index];
    if (!parser->ended && strcmp(word, "--") == 0) {
        parser->index++;
        parser->ended = true;
        parser->saw_dashes = true;
        return parser->stop_at_operand ? OPTION_END : option_next(parser, value);
    }
    if (!parser->ended && strncmp(word, "--", 2) == 0) {
        return next_long(parser, value);
    }
    if (!parser->ended && word[0] == '-' && word[1]) {
        parser->letters = word + 1;
        parser->index++;
        return next_short(parser, value);
    }
    if (parser->stop_at_operand) {
        return OPTION_END;
    }
    *value = word;
    parser->index++;
    return OPTION_OPERAND;
}

void command_help(const struct command *command)
{
    printf("Usage: stepwatch %s %s\n\n%s\n\nOptions:\n", command->name, command->usage,
           command->purpose);
    for (size_t i = 0; i <= command->option_count; i++) {
        static const struct option_spec help = {"help", 'h', NULL, "show this text"};
        const struct option_spec *option =
            i < command->option_count ? &command->options[i] : &help;
        char left[64];
        int used = option->letter ? snprintf(left, sizeof left, "-%c, --%s",
                                             option->letter, option->name)
                                  : snprintf(left, sizeof left, "    --%s", option->name);
        if (option->argument && used > 0 && (size_t)used < sizeof left) {
            snprintf(left + used, sizeof left - (size_t)used, " %s", option->argument);
        }
        printf("  %-22s  %s\n", left, option->help);
    }
    if (command->epilogue) {
        printf("\n%s\n", command->epilogue);
    }
}

bool option_count(const struct command *command, const char *option, const char *text,
                  size_t low, size_t high, size_t *out)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    const bool digits = *text >= '0' && *text <= '9';
    if (!digits || *end || errno || value < low || value > high) {
        cli_complain("%s: --%s takes a number from %zu to %zu, not '%.60s'.",
                     command->name, option, low, high, text);
        return false;
    }
    *out = value;
    return true;
}
