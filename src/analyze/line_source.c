/* Source text for line profiles: from the caller, else from the file. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/line_profile.h"
#include "base/memory.h"
#include "base/os.h"

#define SOURCE_MAX ((size_t)16 << 20)

void sw__line_sources_free(sw_lines *lines)
{
    for (size_t i = 0; i < lines->source_count; i++) {
        sw__free(lines->sources[i].file);
        sw__free(lines->sources[i].text);
        sw__free(lines->sources[i].starts);
    }
    sw__free(lines->sources);
}

static struct sw__line_source *find(const sw_lines *lines, const char *file,
                                    size_t length)
{
    for (size_t i = 0; i < lines->source_count; i++) {
        struct sw__line_source *source = &lines->sources[i];
        if (source->file_length == length && memcmp(source->file, file, length) == 0) {
            return source;
        }
    }
    return NULL;
}

/* Borders of the lines: "\n", "\r\n" and "\r" end one, as in Python. */
static int cut(struct sw__line_source *source)
{
    size_t ends = 0;
    for (size_t i = 0; i < source->length; i++) {
        ends += source->text[i] == '\n' || source->text[i] == '\r';
    }
    source->starts = sw__alloc_zero(ends + 2, sizeof *source->starts);
    if (!source->starts) {
        return SW_ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < source->length; i++) {
        char c = source->text[i];
        if (c == '\r' && i + 1 < source->length && source->text[i + 1] == '\n') {
            continue;
        }
        if (c == '\n' || c == '\r') {
            source->starts[++count] = i + 1;
        }
    }
    if (source->length > source->starts[count]) {
        source->starts[++count] = source->length;
    }
    source->count = count;
    return 0;
}

/* Takes ownership of `text`, also when it fails. */
static struct sw__line_source *add(sw_lines *lines, const char *file, size_t file_length,
                                   char *text, size_t length)
{
    if (lines->source_count == lines->source_room) {
        size_t room = lines->source_room ? lines->source_room * 2 : 8;
        struct sw__line_source *more =
            sw__realloc(lines->sources, room, sizeof *lines->sources);
        if (!more) {
            sw__free(text);
            return NULL;
        }
        lines->sources = more;
        lines->source_room = room;
    }
    struct sw__line_source source = {.file = sw__strndup(file, file_length),
                                     .file_length = file_length,
                                     .text = text,
                                     .length = length};
    if (!source.file || (text && cut(&source) != 0)) {
        sw__free(source.file);
        sw__free(text);
        return NULL;
    }
    lines->sources[lines->source_count] = source;
    return &lines->sources[lines->source_count++];
}

int sw_lines_set_source(sw_lines *lines, const char *file, size_t file_length,
                        const char *text, size_t length)
{
    if (find(lines, file, file_length)) {
        return 0;
    }
    char *copy = sw__strndup(text, length);
    return copy && add(lines, file, file_length, copy, length) ? 0 : SW_ENOMEM;
}

char *sw__source_text(const char *file, size_t *length)
{
    char path[PATH_MAX];
    struct stat facts;
    if (!realpath(file, path) || stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) ||
        (uint64_t)facts.st_size > SOURCE_MAX) {
        return NULL;
    }
    const int fd = sw__os_open_read(path);
    if (fd < 0) {
        return NULL;
    }
    const size_t size = (size_t)facts.st_size;
    char *text = sw__alloc(size + 1);
    if (text && sw__os_pread_all(fd, text, size, 0, length) != 0) {
        sw__free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

const char *sw_lines_source(sw_lines *lines, size_t index, uint32_t line, size_t *length)
{
    const sw_lines_function *function = sw_lines_get(lines, index);
    *length = 0;
    if (!function) {
        return NULL;
    }
    struct sw__line_source *source = find(lines, function->file, function->file_length);
    if (!source) {
        size_t size = 0;
        /* A name with a NUL in it is no file. */
        char *text = strlen(function->file) == function->file_length
                         ? sw__source_text(function->file, &size)
                         : NULL;
        source = add(lines, function->file, function->file_length, text, size);
    }
    if (!source || !source->text || line == 0 || line > source->count) {
        return NULL;
    }
    const char *start = source->text + source->starts[line - 1];
    const char *end = source->text + source->starts[line];
    while (end > start && (end[-1] == '\n' || end[-1] == '\r')) {
        end--;
    }
    *length = (size_t)(end - start);
    return start;
}
