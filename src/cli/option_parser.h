/* Options in the manner of GNU: -o VALUE, -oVALUE, --out VALUE, --out=VALUE, `--` ends them. Names are
 * never abbreviated: a script must not break because an option was added. */
#ifndef SW_CLI_OPTION_PARSER_H
#define SW_CLI_OPTION_PARSER_H

#include <stdbool.h>
#include <stddef.h>

struct option_spec {
    const char *name;     /* long, without the dashes */
    char letter;          /* short, 0: none */
    const char *argument; /* what the help calls it; NULL: takes none */
    const char *help;
};

/* A command, as its help shows it. */
struct command {
    const char *name;
    const char *usage; /* after "stepwatch NAME " */
    const char *purpose;
    const struct option_spec *options; /* --help is added by itself */
    size_t option_count;
    const char *epilogue; /* may be NULL */
};

struct option_parser {
    const struct command *command;
    int argc;
    char **argv;
    int index;            /* of the next word */
    const char *letters;  /* rest of a group of short options */
    bool stop_at_operand; /* the first operand ends the options */
    bool ended;
    bool saw_dashes; /* `--` was there */
};

enum { OPTION_END = -1, OPTION_BAD = -2, OPTION_OPERAND = -3, OPTION_HELP = -4 };

struct option_parser option_parser_start(const struct command *command, int argc,
                                         char **argv, bool stop_at_operand);
/* The number of the option met (its place in the table), or one of the above. `*value` is its argument, or
 * the operand. With stop_at_operand, OPTION_END leaves `index` at the first operand. A mistake has been
 * complained of when OPTION_BAD comes back. */
int option_next(struct option_parser *parser, const char **value);

/* The argument of an option as a number from `low` to `high`; false when it is none, which has been complained of. */
bool option_count(const struct command *command, const char *option, const char *text,
                  size_t low, size_t high, size_t *out);

/* Prints the command's help on stdout. */
void command_help(const struct command *command);

#endif
