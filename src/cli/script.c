/* Telling scripts from programs, before anything is started. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/python.h"

#define NEIGHBOURS_MOST 512

static bool ends_with(const char *word, const char *end)
{
    size_t length = strlen(word);
    return length > strlen(end) && strcmp(word + length - strlen(end), end) == 0;
}

static bool looks_like_script(const char *word)
{
    static const char *const ends[] = {".py", ".pyw", ".pyc", ".pyz", ".zip", ".egg"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (ends_with(word, ends[i])) {
            return true;
        }
    }
    return false;
}

static bool is_in_path(const char *word)
{
    const char *path = strchr(word, '/') ? NULL : getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char file[PATH_MAX];
        snprintf(file, sizeof file, "%.*s/%s", (int)(length ? length : 1),
                 length ? path : ".", word);
        if (access(file, X_OK) == 0) {
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

/* Says that there is no such file, and which one is near. */
static void complain_missing(const char *word)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash ? slash + 1 : word;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - word + 1) : 1,
             slash ? word : ".");
    char *names[NEIGHBOURS_MOST];
    size_t count = 0;
    DIR *stream = opendir(folder);
    const struct dirent *entry;
    while (stream && count < NEIGHBOURS_MOST && (entry = readdir(stream)) != NULL) {
        names[count] = fnmatch("*.py", entry->d_name, FNM_PERIOD) == 0
                           ? strdup(entry->d_name)
                           : NULL;
        count += names[count] != NULL;
    }
    if (stream) {
        closedir(stream);
    }
    const char *near = cli_nearest(name, (const char *const *)names, count);
    if (near) {
        cli_complain("run: there is no script '%.200s'; did you mean '%.*s%.200s'?", word,
                     slash ? (int)(slash - word + 1) : 0, word, near);
    } else {
        cli_complain("run: there is no script '%.200s'", word);
    }
    while (count > 0) {
        free(names[--count]);
    }
}

static bool refuse_program(const char *word)
{
    cli_complain("run: '%.200s' is a program, not a script: stepwatch run -- %.200s",
                 word, word);
    return false;
}

/* A file whose name does not say what it is: its first bytes and its mode do. */
static bool check_content(const char *word, int fd, const struct stat *status)
{
    char begin[256];
    ssize_t length = read(fd, begin, sizeof begin - 1);
    begin[length > 0 ? length : 0] = '\0';
    if (strncmp(begin, "\177ELF", 4) == 0) {
        return refuse_program(word);
    }
    if (strncmp(begin, "#!", 2) == 0) {
        begin[strcspn(begin, "\n")] = '\0';
        return strstr(begin, "python") ? true : refuse_program(word);
    }
    return (status->st_mode & 0111) == 0 || memcmp(begin, "PK", 2) == 0
               ? true
               : refuse_program(word);
}

bool python_check_script(const char *word)
{
    struct stat status;
    if (strcmp(word, "-") == 0) {
        return true;
    }
    if (stat(word, &status) != 0) {
        if (errno == ENOENT && is_in_path(word)) {
            return refuse_program(word);
        }
        if (errno == ENOENT) {
            complain_missing(word);
        } else {
            cli_complain("run: script '%.200s' cannot be read: %s", word,
                         strerror(errno));
        }
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        char path[PATH_MAX + 16];
        snprintf(path, sizeof path, "%s/__main__.py", word);
        if (access(path, R_OK) != 0) {
            cli_complain("run: '%.200s' is a folder without a __main__.py", word);
            return false;
        }
        return true;
    }
    if (!S_ISREG(status.st_mode)) {
        return true; /* a pipe: what comes out of it is Python's business */
    }
    int fd = open(word, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cli_complain("run: script '%.200s' cannot be read: %s", word, strerror(errno));
        return false;
    }
    bool good = looks_like_script(word) || check_content(word, fd, &status);
    close(fd);
    return good;
}

const char *python_operand(char *const *arguments)
{
    for (; *arguments; arguments++) {
        const char *word = *arguments;
        if (word[0] != '-' || !word[1]) {
            return word;
        }
        if (word[1] == '-') {
            arguments += strcmp(word, "--check-hash-based-pycs") == 0 && arguments[1];
            continue;
        }
        /* Flags may share a dash; one that takes a value has it behind it or next. */
        const char *flag = word + 1 + strcspn(word + 1, "cmWX");
        if (*flag == 'c') {
            return NULL;
        }
        if (*flag == 'm') {
            return flag[1] ? flag + 1 : arguments[1];
        }
        arguments += *flag && !flag[1] && arguments[1];
    }
    return NULL;
}

bool python_is_launcher(const char *module)
{
    static const char *const launchers[] = {
        "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
        "deepspeed.launcher.runner"};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (strcmp(module, launchers[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *python_launched(char *const *arguments)
{
    for (; *arguments; arguments++) {
        if (ends_with(*arguments, ".py") && (*arguments)[0] != '-') {
            return *arguments;
        }
    }
    return NULL;
}
