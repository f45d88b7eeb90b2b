/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/iscsi/iscsi_crc32c.h"
#include "base/rng.h"

/* RFC 7143, appendix A.4; there the digests stand as they are on the wire, little-endian. */
static void vectors(void **state) {
    uint8_t up[32], down[32], zeros[32] = { 0 }, ones[32];
    static const uint8_t read10[48] = {
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
        0, 0, 0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
    };
    (void)state;
    for (unsigned i = 0; i < 32; i++) {
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
        ones[i] = 0xff;
    }
    const struct { const uint8_t *p; size_t len; uint32_t crc; } v[] = {
        { zeros, 32, 0x8a9136aa }, { ones, 32, 0x62a8ab43 }, { up, 32, 0x46dd794e }, { down, 32, 0x113fdb5c },
        { read10, 48, 0xd9963a56 }, { (const uint8_t *)"123456789", 9, 0xe3069283 }, { zeros, 0, 0 },
    };
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        assert_int_equal(iscsibe_crc32c(0, v[i].p, v[i].len), v[i].crc);
        assert_int_equal(iscsibe_crc32c_table(0, v[i].p, v[i].len), v[i].crc);
    }
}

/* Any length, any alignment, in any two pieces: both ways say the same. */
static void pieces(void **state) {
    uint8_t data[300];
    struct rng rng;
    (void)state;
    rng_seed(&rng, 7);
    rng_fill(&rng, data, sizeof data);
    for (size_t from = 0; from < 9; from++)
        for (size_t len = 0; len + from <= sizeof data; len += 1 + len / 8) {
            uint32_t whole = iscsibe_crc32c_table(0, data + from, len);
            assert_int_equal(iscsibe_crc32c(0, data + from, len), whole);
            for (size_t cut = 0; cut <= len; cut += 3) {
                assert_int_equal(iscsibe_crc32c(iscsibe_crc32c(0, data + from, cut), data + from + cut, len - cut),
                                 whole);
                assert_int_equal(
                    iscsibe_crc32c_table(iscsibe_crc32c(0, data + from, cut), data + from + cut, len - cut), whole);
            }
        }
}

static void every_bit_counts(void **state) {
    uint8_t data[48] = { 0 };
    uint32_t whole = iscsibe_crc32c(0, data, sizeof data);
    (void)state;
    for (unsigned bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(iscsibe_crc32c(0, data, sizeof data), whole);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(vectors), cmocka_unit_test(pieces),
                                        cmocka_unit_test(every_bit_counts) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
