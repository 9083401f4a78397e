/* Check sums of file formats. */
#ifndef SW_BASE_CRC_H
#define SW_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

#define SW__CRC32 0xEDB88320u  /* PNG, zip */
#define SW__CRC32C 0x82F63B78u /* TFRecord, iSCSI */

/* Goes on from `sum`, 0 at first. `polynomial` is one of the above, bits turned around. */
uint32_t sw__crc(uint32_t polynomial, uint32_t sum, const void *bytes, size_t length);

#endif
