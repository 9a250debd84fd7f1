/* What is done for attempts each second, or more often. */
#ifndef COORDINATOR_WLBD_MAIN_TICK_H
#define COORDINATOR_WLBD_MAIN_TICK_H

struct wlbd;

/* Called each second: probes silent nodes, kills steps that do not end by order, removes attempts that have ended.
 */
void wlbd_tick(struct wlbd *wlbd);

/* Called several times a second: judges the attempts of which a hang is suspected. */
void wlbd_tick_suspected(struct wlbd *wlbd);

#endif
