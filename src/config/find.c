#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/os.h"
#include "base/utf8.h"
#include "config/find.h"

#define TABLE "tool.stepwatch"
#define MAPPING "profiling"
#define FOLDERS_MOST 64

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* What a file is, by its name. False: the name does not tell. */
static bool form_of(const char *path, enum sw__config_form *form)
{
    const char *slash = strrchr(path, '/');
    if (strcmp(slash ? slash + 1 : path, "pyproject.toml") == 0) {
        *form = SW__CONFIG_PYPROJECT;
    } else if (ends_with(path, ".toml")) {
        *form = SW__CONFIG_TOML;
    } else if (ends_with(path, ".yaml") || ends_with(path, ".yml")) {
        *form = SW__CONFIG_YAML;
    } else {
        return false;
    }
    return true;
}

/* The first byte that is not part of valid text, or `length`. */
static size_t text_length(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        uint32_t code;
        size_t used = sw__utf8_decode(text + at, length - at, &code);
        if (code == SW__UTF8_INVALID || code == 0) {
            break;
        }
        at += used;
    }
    return at;
}

static int take_text(struct sw__config_file *file, int fd, size_t size,
                     sw_error_info *info)
{
    size_t got = 0;
    char *text = sw__alloc(size + 1);
    if (!text) {
        return sw_error_set(info, SW_ENOMEM, "there is no memory for %.200s", file->path);
    }
    int error = sw__os_pread_all(fd, text, size, 0, &got);
    size_t good = error == 0 ? text_length(text, got) : 0;
    if (error != 0) {
        sw_error_set(info, SW_EREAD, "%.200s cannot be read: %s", file->path,
                     strerror(error < 0 ? -error : error));
    } else if (good < got) {
        unsigned line = 1;
        for (size_t i = 0; i < good; i++) {
            line += text[i] == '\n';
        }
        sw_error_set(info, SW_EFORMAT, "%.200s:%u: this is not UTF-8 text", file->path,
                     line);
        error = -1;
    }
    if (error != 0) {
        sw__free(text);
        return info ? info->code : SW_EFORMAT;
    }
    /* The mark that some editors put in front of UTF-8. */
    if (got >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        got -= 3;
        memmove(text, text + 3, got);
    }
    text[got] = '\0';
    file->text = text;
    file->length = got;
    return SW_OK;
}

/* Reads file->path. `owner` is the only user besides root and the caller whose file counts; NULL:
 * anybody's does. */
static int open_checked(struct sw__config_file *file, const uid_t *owner,
                        sw_error_info *info)
{
    /* Without waiting: a pipe has no writer, a terminal no line. */
    int fd = open(file->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (fd < 0) {
        /* A process out of descriptors has trouble of its own, and says so elsewhere. */
        const bool none =
            errno == ENOENT || errno == ENOTDIR || errno == EMFILE || errno == ENFILE;
        int code = none ? SW_ENOTFOUND : SW_EOPEN;
        return sw_error_set(info, code, "%.200s cannot be read: %s", file->path,
                            strerror(errno));
    }
    int result = SW_OK;
    if (fstat(fd, &status) != 0) {
        result = sw_error_set(info, SW_EREAD, "%.200s cannot be read: %s", file->path,
                              strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        result = sw_error_set(info, SW_EFORMAT, "%.200s is %s, not a file", file->path,
                              S_ISDIR(status.st_mode)    ? "a folder"
                              : S_ISFIFO(status.st_mode) ? "a pipe"
                                                         : "a device");
    } else if (owner && status.st_uid != 0 && status.st_uid != geteuid() &&
               status.st_uid != *owner) {
        result =
            sw_error_set(info, SW_ENOTFOUND, "%.200s is somebody else's", file->path);
    } else if (status.st_size > (off_t)SW__CONFIG_FILE_MOST) {
        result = sw_error_set(info, SW_EFORMAT,
                              "%.200s is longer than 1 MiB, which no configuration is",
                              file->path);
    } else {
        result = take_text(file, fd, (size_t)status.st_size, info);
    }
    close(fd);
    return result;
}

int sw__config_open(struct sw__config_file *file, const char *path, sw_error_info *info)
{
    memset(file, 0, sizeof *file);
    if (strlen(path) >= sizeof file->path) {
        return sw_error_set(info, SW_EINVAL, "the path of the configuration is too long");
    }
    memcpy(file->path, path, strlen(path) + 1);
    if (!form_of(path, &file->form)) {
        return sw_error_set(info, SW_EINVAL,
                            "%.200s is no configuration: its name should end with .toml, "
                            ".yaml or .yml",
                            path);
    }
    sw_error_info why = {0};
    int result = open_checked(file, NULL, info ? info : &why);
    /* Named by somebody, so it is an error that it is not there. */
    return result == SW_ENOTFOUND ? SW_EOPEN : result;
}

static void ignore_entry(void *arg, const struct sw__config_entry *entry)
{
    (void)arg;
    (void)entry;
}

static void ignore_mistake(void *arg, unsigned line, const char *sentence)
{
    (void)arg;
    (void)line;
    (void)sentence;
}

/* One folder. Only in the working directory itself something that cannot be read is worth a word. */
static int find_in(struct sw__config_file *file, const char *folder, bool first,
                   uid_t owner, sw_error_info *info)
{
    static const char *const names[] = {"stepwatch.toml", "pyproject.toml",
                                        "stepwatch.yaml", "stepwatch.yml"};
    static const struct sw__config_sink nobody = {ignore_entry, ignore_mistake, NULL};
    for (size_t i = 0; i < SW__COUNTOF(names); i++) {
        memset(file, 0, sizeof *file);
        int length = first ? snprintf(file->path, sizeof file->path, "%s", names[i])
                           : snprintf(file->path, sizeof file->path, "%s/%s",
                                      folder[1] ? folder : "", names[i]);
        if (length < 0 || (size_t)length >= sizeof file->path) {
            continue;
        }
        form_of(names[i], &file->form);
        bool shared = file->form == SW__CONFIG_PYPROJECT;
        sw_error_info why = {0};
        int result = open_checked(file, first ? NULL : &owner, &why);
        if (result == SW_OK && shared && !sw__config_read(file, &nobody)) {
            sw__config_close(file);
            continue;
        }
        if (result == SW_OK) {
            return SW_OK;
        }
        if (result != SW_ENOTFOUND && first && !shared) {
            return sw_error_set(info, result, "%s", why.message);
        }
    }
    return SW_ENOTFOUND;
}

int sw__config_find(struct sw__config_file *file, sw_error_info *info)
{
    char folder[PATH_MAX];
    struct stat here;
    memset(file, 0, sizeof *file);
    if (!getcwd(folder, sizeof folder) || folder[0] != '/' || stat(".", &here) != 0) {
        return SW_ENOTFOUND;
    }
    bool first = true;
    for (int i = 0; i < FOLDERS_MOST; i++) {
        int result = find_in(file, folder, first, here.st_uid, info);
        if (result != SW_ENOTFOUND) {
            return result;
        }
        first = false;
        char *slash = strrchr(folder, '/');
        if (!folder[1]) {
            break;
        }
        slash[slash == folder] = '\0';
    }
    memset(file, 0, sizeof *file);
    return SW_ENOTFOUND;
}

bool sw__config_read(const struct sw__config_file *file,
                     const struct sw__config_sink *sink)
{
    switch (file->form) {
    case SW__CONFIG_TOML:
        return sw__toml_read(file->text, file->length, "", sink);
    case SW__CONFIG_PYPROJECT:
        return sw__toml_read(file->text, file->length, TABLE, sink);
    case SW__CONFIG_YAML:
        return sw__yaml_read(file->text, file->length, MAPPING, sink);
    }
    return false;
}

const char *sw__config_part(enum sw__config_form form)
{
    return form == SW__CONFIG_YAML ? "mapping '" MAPPING ":'" : "table [" TABLE "]";
}

void sw__config_close(struct sw__config_file *file)
{
    sw__free(file->text);
    file->text = NULL;
    file->length = 0;
}
