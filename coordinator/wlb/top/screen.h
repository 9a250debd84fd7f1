/* The terminal as a screen that is drawn again and again: its modes are restored in every case. */
#ifndef COORDINATOR_WLB_TOP_SCREEN_H
#define COORDINATOR_WLB_TOP_SCREEN_H

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

#include "libwlb/wlb.h"

enum wlb_screen_event {
	WLB_SCREEN_NONE,  /* the time is over */
	WLB_SCREEN_DRAW,  /* the terminal has another size, or was used by another program */
	WLB_SCREEN_QUIT,  /* q, Ctrl-C, or the end of standard input */
	WLB_SCREEN_ENDED, /* the process was told to end: wlb_screen_close does that */
};

struct wlb_screen {
	int events_fd; /* readable once there is an event: also for wlb_connection_cancel_on */
	int signal_fd;
	sigset_t signals_before;
	bool has_keys; /* standard input is a terminal */
	struct termios modes_before;
	int ended_by; /* the signal; 0: none */
};

/* Standard output is a terminal. Returns -1 if the terminal cannot be used; it is unchanged then. */
int wlb_screen_open(struct wlb_screen *screen, struct wlb_error *error);

/* Restores the terminal, and ends the process where a signal asked for that. */
void wlb_screen_close(struct wlb_screen *screen);

/* Waits at most `ms` for an event. */
enum wlb_screen_event wlb_screen_wait(struct wlb_screen *screen, int ms);

/* Whether there is an event that was not waited for. */
bool wlb_screen_has_event(const struct wlb_screen *screen);

/* The size of the terminal; 80 columns and 24 rows where it does not say. */
void wlb_screen_size(int *columns, int *rows);

#endif
