"""How far two observers' times of one event may lie apart when both read the same clock.

Where they do not, `Clocks.apart_us` (analysis.evidence.clocks) comes on top.
"""

# A program reads the clock, then the kernel sends a packet, or the other way round.
CLOCK_SLACK_US = 5_000

# The longest turn of nginx's event loop that is reckoned with: it reads the clock once in each turn, and stamps its
# lines by that, so that a packet may leave so much later than its line says.
NGINX_TURN_US = 50_000
