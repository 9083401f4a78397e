/* Version of the library and of the trace format it writes. */
#ifndef STEPWATCH_VERSION_H
#define STEPWATCH_VERSION_H

#define SW_VERSION_MAJOR 0
#define SW_VERSION_MINOR 1
#define SW_VERSION_PATCH 0
#define SW_VERSION_STRING "0.1.0"
#define SW_FORMAT_VERSION 1

#endif
