/* Line profiles for machines. */
#include <math.h>
#include <stepwatch/export.h>

static void put_line(sw_writer *writer, sw_lines *lines, size_t index,
                     const sw_lines_line *line, uint64_t total_ns)
{
    size_t length;
    const char *source = sw_lines_source(lines, index, line->line, &length);
    sw_json_object_begin(writer);
    sw_json_key(writer, "line");
    sw_json_uint(writer, line->line);
    sw_json_key(writer, "hits");
    sw_json_uint(writer, line->hits);
    sw_json_key(writer, "time_ns");
    sw_json_uint(writer, line->ns);
    sw_json_key(writer, "per_hit_ns");
    sw_json_double(writer, line->hits ? (double)line->ns / (double)line->hits : NAN);
    sw_json_key(writer, "share");
    sw_json_double(writer, total_ns ? (double)line->ns / (double)total_ns : NAN);
    sw_json_key(writer, "source");
    if (source) {
        sw_json_string_n(writer, source, length);
    } else {
        sw_json_null(writer);
    }
    sw_json_object_end(writer);
}

static void put_function(sw_writer *writer, sw_lines *lines, size_t index)
{
    const sw_lines_function *function = sw_lines_get(lines, index);
    sw_json_object_begin(writer);
    sw_json_key(writer, "file");
    sw_json_string_n(writer, function->file, function->file_length);
    sw_json_key(writer, "name");
    sw_json_string_n(writer, function->name, function->name_length);
    sw_json_key(writer, "line");
    sw_json_uint(writer, function->first_line);
    sw_json_key(writer, "total_ns");
    sw_json_uint(writer, function->total_ns);
    sw_json_key(writer, "lines");
    sw_json_array_begin(writer);
    for (size_t i = 0; i < function->line_count; i++) {
        const sw_lines_line *line = &function->lines[i];
        if (line->hits || line->ns) {
            put_line(writer, lines, index, line, function->total_ns);
        }
    }
    sw_json_array_end(writer);
    sw_json_object_end(writer);
}

void sw_export_lines_json(sw_writer *writer, sw_lines *lines)
{
    sw_json_start(writer, true);
    sw_json_object_begin(writer);
    sw_json_key(writer, "schema");
    sw_json_string(writer, "stepwatch.lines/1");
    sw_json_key(writer, "unit");
    sw_json_string(writer, "ns");
    sw_json_key(writer, "functions");
    sw_json_array_begin(writer);
    for (size_t i = 0; i < sw_lines_count(lines); i++) {
        put_function(writer, lines, i);
    }
    sw_json_array_end(writer);
    sw_json_object_end(writer);
    sw_write_text(writer, "\n");
}
