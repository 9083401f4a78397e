/* Arguments that look like secrets. */
#ifndef SW_CLI_SECRETS_H
#define SW_CLI_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

/* Copies an argument, with what looks secret replaced by ***. `*hide_next` says that the argument before it
 * announced a secret ("--password"), and is set for the next one. */
void secrets_redact(char *out, size_t size, const char *argument, bool *hide_next);

#endif
