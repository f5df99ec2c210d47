-- Each request's cause, by the causes' own SQL. Where clocks are apart by more than its proof bears, `doubted` has it,
-- and nothing is proven.
CREATE TABLE decided AS
SELECT instance, id, if(doubted IS NULL, cause, $unexplained) AS cause, doubted
  FROM (SELECT instance, id, cause, $doubted AS doubted FROM (SELECT *, $cause AS cause FROM known));
