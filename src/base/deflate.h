/* Compression for images: what zlib makes, written here so that the bytes are the same everywhere and nothing has to be linked. */
#ifndef SW_BASE_DEFLATE_H
#define SW_BASE_DEFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/write.h>

/* Writes a zlib stream (RFC 1950). 0 or SW_ENOMEM; errors of writing stick to the writer. */
int sw__deflate(sw_writer *writer, const uint8_t *data, size_t length);

#endif
