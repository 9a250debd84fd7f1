#include "coordinator/wlbd/http/exchange.h"

void wlbd_exchange_suspend(struct wlbd_exchange *exchange)
{
	exchange->is_suspended = true;
	MHD_suspend_connection(exchange->mhd);
}

void wlbd_exchange_resume(struct wlbd_exchange *exchange)
{
	static const struct timeval now;
	exchange->is_suspended = false;
	MHD_resume_connection(exchange->mhd);
	event_add(exchange->all->wake, &now);
}

void wlbd_exchange_answered(struct wlbd_exchange *exchange)
{
	exchange->is_answered = true;
	if (exchange->is_suspended)
		wlbd_exchange_resume(exchange);
}

void wlbd_exchanges_resume_all(struct wlbd_exchanges *exchanges)
{
	struct wlbd_exchange *exchange;
	TAILQ_FOREACH(exchange, &exchanges->list, link)
	if (exchange->is_suspended)
		wlbd_exchange_resume(exchange);
}
