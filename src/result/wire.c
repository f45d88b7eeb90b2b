/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result/wire.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "result/fields.h"

static double track(const struct record *r, const char *name) {
    for (unsigned i = 0; i < r->n_tracks; i++)
        if (!strcmp(r->track[i].name, name)) return r->track[i].cumulative ? r->track[i].total : r->track[i].last;
    return NAN;
}

static void put_count(struct fields *f, const char *name, double value) {
    fields_put(f, name, value >= 0 ? json_integer((json_int_t)value) : json_null());
}

/* Little's law, as in the run's own littles_law: the sum of the latencies against the time integral of what was
 * outstanding, both between the same two samples. Requests that were out at one of them count whole in the one and in
 * part in the other: hence the allowance. */
static json_t *littles_law(const struct record *r, double latencies, double area) {
    struct fields f = fields_new();
    double window = (double)r->window_ns;
    fields_real(&f, "depth", window > 0 ? latencies / window : NAN);
    fields_real(&f, "deviation", area > 0 ? latencies / area - 1 : NAN);
    fields_real(&f, "allowed", window > 0 ? 0.03 + track(r, "wire_lat_max_ns") / window : NAN);
    return fields_end(&f);
}

static json_t *readahead(const struct record *r) {
    struct fields f = fields_new();
    put_count(&f, "hits", track(r, "readahead_hits"));
    put_count(&f, "misses", track(r, "readahead_misses"));
    put_count(&f, "wasted_bytes", track(r, "readahead_wasted_bytes"));
    return fields_end(&f);
}

json_t *wire_json(const struct record *r) {
    double ios = track(r, "wire_ios"), area = track(r, "wire_depth_area_ns"), latencies = track(r, "wire_lat_sum_ns");
    double window = (double)r->window_ns, app = (double)(r->op[IO_READ].ios + r->op[IO_WRITE].ios);
    if (isnan(area) || !(window > 0)) return json_null();
    struct fields f = fields_new();
    put_count(&f, "ios", ios);
    fields_real(&f, "iops", ios * NS_PER_SEC / window);
    fields_real(&f, "ios_per_io", app > 0 ? ios / app : NAN);
    fields_real(&f, "lat_mean_ns", ios > 0 ? latencies / ios : NAN);
    put_count(&f, "lat_max_ns", track(r, "wire_lat_max_ns"));
    fields_real(&f, "depth_achieved", area / window);
    fields_put(&f, "littles_law", littles_law(r, latencies, area));
    fields_put(&f, "readahead", readahead(r));
    return fields_end(&f);
}
