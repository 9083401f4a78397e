/* What the commands share. The command is an ordinary user of the library: public headers only. */
#ifndef SW_CLI_CLI_H
#define SW_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/analyze.h>
#include <stepwatch/export.h>

enum {
    CLI_GOOD = 0,
    CLI_NO = 1,         /* the answer is "no" */
    CLI_USAGE = 2,      /* wrong usage */
    CLI_UNREADABLE = 3, /* input that cannot be read */
    CLI_CANNOT_EXECUTE = 126,
    CLI_NOT_FOUND = 127
};

/* The commands; argv[0] is the command's own name. */
int cmd_report(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* "stepwatch: sentence" on stderr; a full stop is added where there is none. */
void cli_complain(const char *format, ...) SW_PRINTF(1, 2);
/* The word of a list that is nearest to a misspelt one, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *words, size_t count);

/* Whether the value of an option says no, in one of the ways in which that can be said. */
bool cli_is_off(const char *value);

/* How text should look on a descriptor: width of the terminal or `width` (0: find out), colour ("auto",
 * "always", "never"), characters (0: what the locale has, 1: ASCII, 2: Unicode). */
enum { CLI_CHARACTERS_AUTO, CLI_CHARACTERS_ASCII, CLI_CHARACTERS_UNICODE };
sw_text_options cli_text_options(int fd, size_t width, const char *colour, int characters,
                                 size_t top);

/* Completes the files of dead processes in a run directory (or one file). What went wrong is kept as
 * sentences; the caller frees the list. */
struct cli_sentences {
    char **text;
    size_t count;
};
void cli_fold_run(const char *path, struct cli_sentences *problems);
void cli_sentences_add(struct cli_sentences *list, const char *format, ...)
    SW_PRINTF(2, 3);
void cli_sentences_free(struct cli_sentences *list);
/* What processes of a run left for the reader to know: one sentence each, none twice. */
void cli_read_notes(const char *path, struct cli_sentences *notes);

/* Opens and summarises a run; what folding could not do becomes a note. */
int cli_summarise(const char *path, sw_run **run, sw_summary **summary,
                  sw_error_info *info);

/* A run that was opened and looked at: its summary, and what is wrong. */
struct cli_case {
    sw_run *run;
    sw_summary *summary;
    sw_findings *findings;
};
/* The caller ends it with cli_case_free. */
int cli_case_open(struct cli_case *out, const char *path, sw_error_info *info);
void cli_case_free(struct cli_case *it);

#endif
