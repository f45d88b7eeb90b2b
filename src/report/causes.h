/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why a row is as it is, where the run's own counters show it: each cause looks at one run and names what was seen, what
 * it means, and what would change it. What a healthy run shows as well is not said at all. */
#ifndef REPORT_CAUSES_H
#define REPORT_CAUSES_H

#include <jansson.h>
#include <stddef.h>

struct cause {
    double (*look)(const json_t *run, char *buf, size_t len); /* how bad it is, 0: nothing to say; puts the words */
    double finding_from; /* as bad as this, it changes how the row is to be read */
};

extern const struct cause causes[]; /* up to one without `look` */

/* The parts of a network's: causes_net.c */
double cause_r2t(const json_t *run, char *buf, size_t len);
double cause_one_path(const json_t *run, char *buf, size_t len);
double cause_stuck_connection(const json_t *run, char *buf, size_t len);
double cause_loss(const json_t *run, char *buf, size_t len);
double cause_black_hole(const json_t *run, char *buf, size_t len);

#endif
