/* The reader of report.json on arbitrary bytes. What it accepts is compared with itself: nothing may have changed. */
#include <stdint.h>
#include <stdlib.h>

#include <stepwatch/compare.h>
#include <stepwatch/export.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const sw_comparison *comparison)
{
    const sw_text_options look = {.columns = 90, .top = 20};
    char sentence[200];
    const sw_compared *run = sw_comparison_get(comparison, 0);
    if (run->regression || run->verdict == SW_VERDICT_FASTER ||
        run->verdict == SW_VERDICT_SLOWER) {
        abort();
    }
    (void)sw_comparison_sentence(comparison, 0, true, sentence, sizeof sentence);
    sw_writer *writer = sw_writer_to_memory();
    sw_export_compare_text(writer, comparison, &look);
    sw_writer_close(writer, NULL);
    writer = sw_writer_to_memory();
    sw_export_compare_json(writer, comparison);
    if (sw_writer_close(writer, NULL) != SW_OK) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sw_compare_input *input;
    sw_comparison *comparison;
    sw_error_info info;
    const char *text = size ? (const char *)data : "";
    if (sw_compare_input_read_report(&input, text, size, "fuzz", &info) != SW_OK) {
        return 0;
    }
    const sw_compare_input *const twice[] = {input, input};
    if (sw_compare_inputs(&comparison, twice, 2, NULL, &info) == SW_OK) {
        look_at(comparison);
        sw_comparison_free(comparison);
    }
    sw_compare_input_free(input);
    return 0;
}
