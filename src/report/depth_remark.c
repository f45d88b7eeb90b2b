/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/depth_remark.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "report/figure.h"
#include "result/view.h"

#define REACHED 0.9 /* of what was asked for */

static bool asks_always(const json_t *document, const char *pattern) {
    const json_t *patterns = view_at(document, "plan/patterns");
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        const json_t *p = json_array_get(patterns, i);
        if (view_text_is(p, "name", pattern)) return !view_uint(p, "rate_iops") && !view_uint(p, "thinktime");
    }
    return false;
}

bool depth_remark(const json_t *document, const char *pattern, const char *target, char *buf, size_t len) {
    const json_t *runs = view_at(document, "runs");
    double least = REACHED;
    unsigned hits = 0, n = 0;
    char achieved[40];
    if (!asks_always(document, pattern)) return false;
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        double depth = view_number(run, "depth_achieved"), asked = view_number(run, "depth_requested");
        if (!view_text_is(run, "pattern", pattern) || !view_text_is(run, "target", target)) continue;
        n++;
        if (view_text_is(run, "status", "lost") || view_text_is(run, "status", "interrupted")) continue;
        if (json_is_object(view_at(run, "wire")) || !(asked > 1) || !(depth / asked < REACHED)) continue;
        hits++;
        if (!(depth / asked < least)) continue;
        least = depth / asked;
        snprintf(buf, len, "the depth was not reached: %s of %" PRIu64 " I/Os were out on average, and the response times "
                 "are those of that depth", figure(achieved, sizeof achieved, depth, 3), view_uint(run, "depth_requested"));
    }
    if (hits && n > 1) {
        char line[300];
        snprintf(line, sizeof line, "%s (%u of %u rounds)", buf, hits, n);
        snprintf(buf, len, "%s", line);
    }
    return hits > 0;
}
