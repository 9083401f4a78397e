/* stepwatch: one command with many. */
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <stepwatch/version.h>

#include "cli/cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *purpose;
} commands[] = {
    {"run", cmd_run, "run a script or a program under the recorder, then report"},
    {"report", cmd_report, "report on a run directory or a native file"},
    {"compare", cmd_compare, "say what changed from one run to others"},
    {"history", cmd_history, "list earlier runs of this place, newest first"},
    {"export", cmd_export, "write a run as other tools read it"},
    {"stats", cmd_stats, "print a function profile (a .stats file, or of a run)"},
    {"doctor", cmd_doctor, "say what can be recorded here, and why not what cannot"},
};
#define COMMANDS (sizeof commands / sizeof commands[0])

void cli_complain(const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = strlen(text);
    bool ended = length > 0 && strchr(".?!", text[length - 1]);
    fprintf(stderr, "stepwatch: %s%s\n", text, ended ? "" : ".");
}

bool cli_is_off(const char *value)
{
    static const char *const words[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void print_help(FILE *stream)
{
    fputs("Usage: stepwatch COMMAND [options] ...\n\n"
          "Where a training step's time goes.\n\nCommands:\n",
          stream);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(stream, "  %-8s  %s\n", commands[i].name, commands[i].purpose);
    }
    fputs(
        "\nOptions:\n"
        "  -h, --help     show this text; 'stepwatch COMMAND --help' shows a command's\n"
        "      --version  show the version\n\n"
        "Exit codes: 0 good; 1 the answer is \"no\"; 2 wrong usage; 3 input unreadable.\n"
        "'run' exits with the program's own code.\n",
        stream);
}

static int unknown(const char *word)
{
    const char *names[COMMANDS + 1];
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
    }
    names[COMMANDS] = "help";
    static const char *const options[] = {"--help", "--version"};
    const char *near = word[0] == '-' ? cli_nearest(word, options, 2)
                                      : cli_nearest(word, names, COMMANDS + 1);
    const char *what = word[0] == '-' ? "option" : "command";
    if (near) {
        cli_complain("unknown %s '%.100s'; did you mean '%s'?", what, word, near);
    } else {
        cli_complain("unknown %s '%.100s'; see 'stepwatch --help'.", what, word);
    }
    return CLI_USAGE;
}

static int dispatch(int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[0], commands[i].name) == 0) {
            return commands[i].run(argc, argv);
        }
    }
    return unknown(argv[0]);
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return CLI_GOOD;
    }
    char option[] = "--help";
    char *words[] = {argv[1], option, NULL};
    return argv[1][0] == '-' ? unknown(argv[1]) : dispatch(2, words);
}

static int answer(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    const char *first = argv[1];
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        print_help(stdout);
        return CLI_GOOD;
    }
    if (strcmp(first, "--version") == 0) {
        puts("stepwatch " SW_VERSION_STRING);
        return CLI_GOOD;
    }
    if (strcmp(first, "help") == 0) {
        return help(argc - 1, argv + 1);
    }
    return dispatch(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    const int code = answer(argc, argv);
    /* Help and version; results are written, and checked, by the commands. */
    if (code == CLI_GOOD && (fflush(stdout) != 0 || ferror(stdout))) {
        cli_complain("the text could not be written: %s.", strerror(errno));
        return CLI_UNREADABLE;
    }
    return code;
}
