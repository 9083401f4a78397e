/* Text with what looks like a secret hidden as ***: passwords, tokens and keys behind names that announce them
 * ("--api-key=x", "password: x"), keys that are known by their beginning, logins in URLs. */
#ifndef STEPWATCH_REDACT_H
#define STEPWATCH_REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies `length` bytes of text into `out` (NUL-terminated, cut to `size` ≥ 8 with an ellipsis). */
SW_API void sw_redact_text(char *out, size_t size, const char *text, size_t length);
/* The same for one argument of a command line; `*flag`, 0 before the first, carries over whether the argument
 * before announced a secret ("--token x"). */
SW_API void sw_redact_argument(char *out, size_t size, const char *argument,
                               size_t length, int *flag);
/* Copies text in the same way and hides nothing. */
SW_API void sw_copy_text(char *out, size_t size, const char *text, size_t length);

#ifdef __cplusplus
}
#endif
#endif
