/* The reader of pstats files on arbitrary bytes. What it accepts is exported and read again: nothing may change. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/export.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether a text is one that the exporter writes as it is. */
static int is_ascii(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] >= 128) {
            return 0;
        }
    }
    return 1;
}

static void read_again(const sw_functions *functions)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_functions *again;
    size_t length;
    if (!writer) {
        return;
    }
    sw_export_pstats(writer, functions);
    const char *bytes = sw_writer_text(writer, &length);
    if (!bytes || sw_functions_read_pstats(&again, bytes, length, NULL) != SW_OK) {
        abort();
    }
    int plain = 1;
    for (size_t i = 0; i < sw_functions_count(functions); i++) {
        const sw_function *function = sw_functions_get(functions, i);
        plain = plain && is_ascii(function->file, function->file_length) &&
                is_ascii(function->name, function->name_length);
    }
    if (plain && (sw_functions_count(again) != sw_functions_count(functions) ||
                  sw_functions_sum(again).calls != sw_functions_sum(functions).calls)) {
        abort();
    }
    sw_functions_free(again);
    sw_writer_close(writer, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sw_functions *functions;
    sw_error_info info;
    if (sw_functions_read_pstats(&functions, data, size, &info) == SW_OK) {
        sw_writer *writer = sw_writer_to_memory();
        const sw_functions_text_options look = {.limit = 50, .columns = 90};
        sw_export_functions_text(writer, functions, &look);
        sw_writer_close(writer, NULL);
        writer = sw_writer_to_memory();
        sw_export_functions_json(writer, functions, &look);
        sw_writer_close(writer, NULL);
        read_again(functions);
        sw_functions_free(functions);
    }
    return 0;
}
