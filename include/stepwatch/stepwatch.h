/* stepwatch: where a training step's time goes. This header brings the whole recording API; programs
 * that read traces add <stepwatch/trace.h> and <stepwatch/analyze.h>. */
#ifndef STEPWATCH_STEPWATCH_H
#define STEPWATCH_STEPWATCH_H

#include <stepwatch/clock.h>
#include <stepwatch/config.h>
#include <stepwatch/error.h>
#include <stepwatch/record.h>
#include <stepwatch/records.h>
#include <stepwatch/schedule.h>
#include <stepwatch/version.h>
#include <stepwatch/watch.h>

#endif
