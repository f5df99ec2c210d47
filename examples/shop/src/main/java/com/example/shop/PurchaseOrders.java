package com.example.shop;

import org.springframework.data.jpa.repository.JpaRepository;

public interface PurchaseOrders extends JpaRepository<PurchaseOrder, Long> {}
