/* Rows of the trace's table CODE: one a function, whoever asks for it. The function profiler, the line profiler and the
 * sampler speak of functions by the index of that row. */
#ifndef STEPWATCH_EXT_CODE_ROWS_H
#define STEPWATCH_EXT_CODE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define CORE_NO_CODE UINT32_MAX

/* Index of the CODE row of a function in the current recording; CORE_NO_CODE when nothing is recorded or there is no
 * room. Texts are UTF-8 and may hold any bytes. `flags`: SW_ROW_NATIVE or 0. Equal arguments give the same row as
 * long as the recording lasts; an index of an earlier recording means nothing, so whoever keeps one compares
 * sw_recording_number. Any thread, without the GIL; takes memory only for a function that is new. */
uint32_t core_code_row(const char *file, size_t file_length, const char *qualname,
                       size_t qualname_length, const char *name, size_t name_length,
                       uint32_t first_line, unsigned flags);

/* The same for a code object (PyCodeObject *), with the GIL. No exception comes out, and one that is pending stays. Before
 * 3.11 code knows no qualified name; the short one stands for it. */
uint32_t core_code_row_of(void *code);

#endif
