/* What the files of the line profile share. */
#ifndef SW_ANALYZE_LINE_PROFILE_H
#define SW_ANALYZE_LINE_PROFILE_H

#include <stepwatch/lines.h>

#include "base/memory.h"

struct sw__line_entry {
    uint32_t function;
    sw_lines_line line;
};

/* A source file cut into lines; text NULL: it could not be read. */
struct sw__line_source {
    char *file;
    size_t file_length;
    char *text;
    size_t length;
    size_t *starts; /* count + 1 offsets: line n is [starts[n - 1], starts[n]) */
    size_t count;
};

/* Invariant after sw_lines_finish: the lines of all functions lie in `rows`, each function's together. */
struct sw_lines {
    sw__arena *arena; /* names */
    sw_lines_function *functions;
    size_t count, room;
    struct sw__line_entry *entries; /* as they were added */
    size_t entry_count, entry_room;
    sw_lines_line *rows;
    bool finished;
    struct sw__line_source *sources;
    size_t source_count, source_room;
};

void sw__line_sources_free(sw_lines *lines);

/* The whole file, or NULL; the caller frees it. The name comes from a trace: anything but a plain file is left alone. */
char *sw__source_text(const char *file, size_t *length);

#endif
