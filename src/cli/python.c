/* Finding a Python and the package. What can be seen on disk is not asked for: starting a Python takes longer than
 * everything else that `run` does. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/python.h"

#define BOOTSTRAP "/_bootstrap"
#define MARK BOOTSTRAP "/sitecustomize.py" /* what makes a folder our package */

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

static bool is_package(const char *folder)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s" MARK, folder);
    return *folder && access(path, R_OK) == 0;
}

bool python_is_name(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    if (strncmp(name, "python", 6) != 0) {
        return false;
    }
    size_t version = strspn(name + 6, "0123456789.");
    const char *rest = name + 6 + version;
    return !*rest || strcmp(rest, "t") == 0 || strcmp(rest, "d") == 0 || *rest == '-';
}

/* The folder of this command, without a '/' at its end. False when the system does not tell. */
static bool own_folder(char *out, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length > 0) {
        out[length] = '\0';
    } else {
        /* Without /proc: as it was started. */
        char path[PATH_MAX];
        const char *started = (const char *)getauxval(AT_EXECFN);
        if (!started || !realpath(started, path) || strlen(path) >= size) {
            return false;
        }
        snprintf(out, size, "%s", path);
    }
    char *slash = strrchr(out, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return true;
}

/* "python3.11" for a Python whose file is called so once links are followed, else nothing. */
static void version_of(const char *python, char *out, size_t size)
{
    char path[PATH_MAX];
    *out = '\0';
    if (python && realpath(python, path)) {
        const char *name = strrchr(path, '/') + 1;
        if (python_is_name(name) && strchr(name, '.')) {
            snprintf(out, size, "%.60s", name);
        }
    }
}

/* The package below a prefix such as /usr or a virtual environment. Of several the one for `python`. */
static bool find_below(const char *prefix, const char *python, char *out, size_t size)
{
    char version[64];
    char wanted[80];
    char pattern[PATH_MAX + 128];
    glob_t found = {0};
    version_of(python, version, sizeof version);
    snprintf(wanted, sizeof wanted, "/%s/", version);
    snprintf(pattern, sizeof pattern,
             "%s/{lib,lib64}/python3*/{site,dist}-packages/stepwatch" MARK, prefix);
    *out = '\0';
    if (glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *path = found.gl_pathv[i];
            bool right = *version && strstr(path + strlen(prefix), wanted);
            if (!*out || right) {
                snprintf(out, size, "%.*s", (int)(strlen(path) - strlen(MARK)), path);
            }
        }
    }
    globfree(&found);
    return *out != '\0';
}

/* The package that belongs to this command: in the build folder, or installed with it. */
static bool find_own(const char *folder, const char *python, char *out, size_t size)
{
    static const char built[] = "/src/cli";
    size_t length = strlen(folder);
    if (length > strlen(built) && strcmp(folder + length - strlen(built), built) == 0) {
        snprintf(out, size, "%.*s/python/stepwatch", (int)(length - strlen(built)),
                 folder);
        if (is_package(out)) {
            return true;
        }
    }
    const char *slash = strrchr(folder, '/');
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%.*s", slash ? (int)(slash - folder) : 0, folder);
    return find_below(prefix, python, out, size);
}

bool python_ask(const char *program, const char *code, const char *argument, char *out,
                size_t size)
{
    int channel[2];
    *out = '\0';
    if (pipe2(channel, O_CLOEXEC) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
        dup2(channel[1], STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        execlp(program, program, "-c", code, argument, (char *)NULL);
        _exit(CLI_NOT_FOUND);
    }
    close(channel[1]);
    size_t used = 0;
    while (child > 0 && used + 1 < size) {
        ssize_t got = read(channel[0], out + used, size - 1 - used);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            break;
        }
        used += got > 0 ? (size_t)got : 0;
    }
    close(channel[0]);
    out[used] = '\0';
    out[strcspn(out, "\n")] = '\0';
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status == 0;
}

/* Asks a Python where it has the package. An empty entry of its path is the current folder, where something else may
 * have the name. */
static void ask_package(const char *python, char *out, size_t size)
{
    static const char question[] =
        "import os, sys\n"
        "sys.path[:] = [entry for entry in sys.path if entry]\n"
        "from importlib.util import find_spec\n"
        "spec = find_spec('stepwatch')\n"
        "print(os.path.dirname(spec.origin) if spec and spec.origin else '')\n";
    if (!python_ask(python, question, "", out, size) || !is_package(out)) {
        *out = '\0';
    }
}

/* The first Python that PATH has. */
static void first_in_path(char *out, size_t size)
{
    static const char *const names[] = {"python3", "python"};
    for (size_t i = 0; i < 2; i++) {
        const char *path = getenv("PATH");
        while (path && *path) {
            size_t length = strcspn(path, ":");
            snprintf(out, size, "%.*s/%s", (int)(length ? length : 1),
                     length ? path : ".", names[i]);
            if (is_program(out)) {
                return;
            }
            path += length + (path[length] == ':');
        }
    }
    snprintf(out, size, "%s",
             names[0]); /* which will not be found, and that will be said */
}

/* Fills in the Python beside the command if the package is installed with it. */
static bool find_beside(struct python *out, const char *folder)
{
    static const char *const names[] = {"python3", "python"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(out->program, sizeof out->program, "%s/%s", folder, names[i]);
        if (is_program(out->program) &&
            find_own(folder, out->program, out->package, sizeof out->package)) {
            return true;
        }
    }
    return false;
}

/* The package, for a Python that has been chosen. */
static void find_package(struct python *out, const char *folder, const char *python)
{
    const char *given = getenv("STEPWATCH_PACKAGE");
    if (given && *given) {
        out->package[0] = '\0';
        if (is_package(given) && !realpath(given, out->package)) {
            out->package[0] = '\0';
        }
    } else if (!*folder || !find_own(folder, python, out->package, sizeof out->package)) {
        out->package[0] = '\0';
        if (python) {
            ask_package(python, out->package, sizeof out->package);
        }
    }
}

void python_find(struct python *out)
{
    char folder[PATH_MAX];
    const char *given = getenv("STEPWATCH_PYTHON");
    *out = (struct python){0};
    if (!own_folder(folder, sizeof folder)) {
        folder[0] = '\0';
    }
    if (given && *given) {
        out->whose = "that of STEPWATCH_PYTHON";
        snprintf(out->program, sizeof out->program, "%s", given);
    } else if (*folder && find_beside(out, folder)) {
        out->whose = "that beside this command";
    } else {
        out->whose = "that of PATH";
        first_in_path(out->program, sizeof out->program);
    }
    find_package(out, folder, out->program);
}

void python_find_package(struct python *out, const char *program)
{
    char folder[PATH_MAX];
    *out = (struct python){0};
    if (!own_folder(folder, sizeof folder)) {
        folder[0] = '\0';
    }
    find_package(out, folder, python_is_name(program) ? program : NULL);
}

void python_set_path(const char *package)
{
    const char *before = getenv("PYTHONPATH");
    size_t length = strlen(package) + strlen(BOOTSTRAP);
    size_t size = length + (before ? strlen(before) : 0) + 2;
    char *path = malloc(size);
    if (!path) {
        return;
    }
    snprintf(path, size, "%s" BOOTSTRAP, package);
    bool there = before && strncmp(before, path, length) == 0 &&
                 (before[length] == ':' || !before[length]);
    if (!there) {
        snprintf(path + length, size - length, "%s%s", before && *before ? ":" : "",
                 before ? before : "");
        setenv("PYTHONPATH", path, 1);
    }
    free(path);
}
