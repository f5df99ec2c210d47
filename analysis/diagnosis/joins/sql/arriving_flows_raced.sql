-- An ACK that met a full queue, and data right behind it that found room, look like any other handshake. That can be
-- only if another connection filled the queue after it had let this one's SYN pass, in a moment of overflows. Where two
-- processors take packets, the kernel may take them in another order than the capture: by no more than $order_us.
UPDATE arriving_flows SET ack_dropped_max = arriving_flows.ack_dropped_max + 1
  FROM (
    SELECT raced.observer, raced.id
      FROM arriving_flows AS raced
           ASOF JOIN ticks AS last ON last.instance = raced.to_instance AND last.time_us <= raced.answered_us
           ASOF JOIN ticks AS next ON next.instance = raced.to_instance AND next.time_us >= raced.queued_us
           ASOF LEFT JOIN (SELECT to_instance, queued_us FROM arriving_flows WHERE entered) AS before
                ON before.to_instance = raced.to_instance AND before.queued_us < raced.queued_us
           ASOF LEFT JOIN (SELECT to_instance, queued_us FROM arriving_flows WHERE entered) AS after
                ON after.to_instance = raced.to_instance AND after.queued_us > raced.queued_us
     WHERE raced.entered AND NOT raced.handshakes_only AND next.overflows > last.overflows
       AND (before.queued_us >= raced.answered_us OR after.queued_us <= raced.queued_us + $order_us)
  ) AS races
 WHERE races.observer = arriving_flows.observer AND races.id = arriving_flows.id;
