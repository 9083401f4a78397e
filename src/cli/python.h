/* The Python that runs scripts, and the package that records in it. */
#ifndef SW_CLI_PYTHON_H
#define SW_CLI_PYTHON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct python {
    char program[PATH_MAX]; /* a path, or a name that PATH finds */
    char package[PATH_MAX]; /* the folder of the package, empty: there is none */
    const char *whose;      /* how the program was found: "that of PATH" */
};

/* The Python of STEPWATCH_PYTHON, that beside this command if it has our package, or the first of PATH; and the
 * package: that of STEPWATCH_PACKAGE, that of this command, or the one that Python has, which has to be started to
 * know. */
void python_find(struct python *out);
/* Only the package, for a program that may start Pythons. `program` is asked if it is a Python itself. */
void python_find_package(struct python *out, const char *program);
/* Runs a Python with some code, which gets `argument`, and takes the first line that it prints. False: it failed. */
bool python_ask(const char *program, const char *code, const char *argument, char *out,
                size_t size);
/* Puts the package's bootstrap in front of PYTHONPATH. */
void python_set_path(const char *package);

/* Whether a program's name is that of an interpreter: python, python3.11, /usr/bin/python3-dbg. */
bool python_is_name(const char *program);

/* Whether Python could run `word` as a script. If not, one sentence says why, and what to type instead. */
bool python_check_script(const char *word);
/* The word of a Python's command line that names what it runs: a script, or the module after -m; NULL: neither. */
const char *python_operand(char *const *arguments);
/* Whether a module starts other scripts as ranks, and the script that its command line, or that of another launcher or
 * wrapper, names; NULL: none. */
bool python_is_launcher(const char *module);
const char *python_launched(char *const *arguments);

#endif
