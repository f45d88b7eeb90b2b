/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SIGINT, SIGTERM and SIGHUP end a run in good order: the load stops, what is out is drained, results are saved. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <signal.h>

/* From here on the signals only set the flag, however often they come. One that was ignored (nohup) stays ignored. */
volatile sig_atomic_t *interrupt_catch(void);
/* The signals end the process again. */
void interrupt_release(void);

#endif
