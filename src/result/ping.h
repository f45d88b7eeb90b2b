/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a run's protocol pings say about where its time went: an estimate, because an exact split of single I/Os does not
 * exist. */
#ifndef RESULT_PING_H
#define RESULT_PING_H

#include <jansson.h>

#include "result/record.h"

/* Of the mean latency of a run's I/Os, ns; NAN: unknown. By the first kind of ping, which goes no further than the
 * server's door. */
struct ping_estimate {
    double network; /* the way there and back when nothing is in the way */
    double front;   /* more than that for a ping beside the load: what any request waits in links and at the door */
    double server;  /* more than such a ping for an I/O: the server's work, waiting for other I/Os, moving the data */
};
void ping_estimate(const struct record *r, struct ping_estimate *out);

json_t *ping_json(const struct record *r);        /* null where no pings were wanted */
json_t *ping_series_json(const struct record *r); /* by kind, a column of means */

#endif
